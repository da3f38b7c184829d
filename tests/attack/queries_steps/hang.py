import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
import threading
d='/tmp/attackq/hang'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
def rss(): 
    out=[]
    for p,c in s.pids():
        try: out.append((c[:10],int([l for l in open(f'/proc/{p}/status') if l.startswith('RssAnon')][0].split()[1])//1024,len(os.listdir(f'/proc/{p}/fd'))))
        except Exception: pass
    return out
rng=random.Random(1); W=['apple','war','peace']+['w%d'%i for i in range(300)]
s.put('/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext','phonetic']},{'name':'n','type':'exact'},{'name':'@path','type':['exact','trigram']}]})
for k in range(0,10000,2000):
    s.q('POST','/files/batch',{'operations':[{'op':'put','path':f'/d/f{i}.json','content':json.dumps({'t':' '.join(rng.choices(W,k=30)),'n':i}),'content_type':'application/json'} for i in range(k,k+2000)]})
s.put('/d/huge.json',{'t':'ab '*330000,'n':-1})
for i in range(20): s.put(f'/d/big{i}.json',{'t':'x%d '%i*1+'lorem ipsum '*40000,'n':-2})
def T(label,fn,warn=3):
    t=time.time()
    try: r=fn()
    except Exception as e: r=(0,repr(e)[:150])
    dt=time.time()-t
    print(('SLOW ' if dt>warn else '')+label,r[0],round(dt,2),str(r[1])[:230]); sys.stdout.flush()
print(s.query('/',[],aggregate={'count':True}),rss())
leaf=lambda i:{'field':'n','op':'eq','value':i}
deep=leaf(1)
for _ in range(31): deep={'not':deep}
T('deep31',lambda:s.query('/',deep))
T('deep33',lambda:s.query('/',{'not':{'not':{'not':deep}}}))
d1000=leaf(1)
for _ in range(3000): d1000={'not':d1000}
T('deep3000',lambda:s.query('/',d1000) if False else s.q('POST','/query',('{"path":"/","where":'+'{"not":'*3000+'{"field":"n","op":"eq","value":1}'+'}'*3000+'}').encode(),headers={'Content-Type':'application/json'}))
T('deep1e5',lambda:s.q('POST','/query',('{"path":"/","where":'+'{"not":'*100000+'1'+'}'*100000+'}').encode(),headers={'Content-Type':'application/json'}))
T('or1000',lambda:s.query('/',{'or':[leaf(i) for i in range(1000)]}))
T('and1000contains',lambda:s.query('/',{'or':[{'field':'t','op':'contains','value':'zz%d'%i} for i in range(1000)]}))
T('or1000contains e',lambda:s.query('/',{'or':[{'not':{'field':'t','op':'contains','value':'e'}} for i in range(1000)]}),20)
T('or1000fuzzy',lambda:s.query('/',{'or':[{'field':'t','op':'fuzzy','value':'q%dqqqqqqqqqqqq'%i,'fuzziness':10} for i in range(1000)]}),20)
T('10000leaf',lambda:s.query('/',{'or':[leaf(i) for i in range(10000)]}))
T('in10000',lambda:s.query('/',{'field':'n','op':'in','value':list(range(10000))}))
T('1000xin10000',lambda:s.query('/',{'or':[{'field':'n','op':'in','value':list(range(10000))}]*100}),10)
T('contains1',lambda:s.query('/',{'field':'t','op':'contains','value':'e'},include_total=True))
T('contains1 matches',lambda:s.query('/',{'field':'t','op':'contains','value':'e'},include_matches=True,limit=1000))
T('fuzzy long',lambda:s.query('/',{'field':'t','op':'fuzzy','value':'lorim ipsun apple war','fuzziness':10},include_matches=True))
T('similar',lambda:s.query('/',{'field':'t','op':'similar','value':'lorem ipsum '*80,'threshold':0.0}))
T('search1000',lambda:s.query('/',{'field':'t','op':'search','value':' '.join('w%d'%i for i in range(1000))}))
T('search128or',lambda:s.query('/',{'field':'t','op':'search','value':' OR '.join('w%d*'%i for i in range(120))}))
T('search w*',lambda:s.query('/',{'field':'t','op':'search','value':'w* a* l* i* p* x*'}))
T('phonetic32',lambda:s.query('/',{'field':'t','op':'phonetic','value':' '.join(['war']*32)}))
T('matches huge',lambda:s.query('/',{'field':'t','op':'match','value':'lorem'},include_matches=True,limit=1000))
T('limit',lambda:s.query('/',[],limit=10**9)); T('offset',lambda:s.query('/',[],offset=10**18)); T('off100k',lambda:s.query('/',[],offset=99999,limit=1)); T('neg',lambda:s.query('/',[],limit=-1)); T('float',lambda:s.query('/',[],limit=1.5))
T('groupby unique',lambda:s.query('/',[],aggregate={'count':True,'sum':['n'],'min':['t'],'max':['t'],'avg':['n']},group_by=['@path','t'],limit=1000))
T('groupby @hash off',lambda:s.query('/',[],aggregate={'count':True},group_by=['@hash'],limit=1000,offset=9000,order_by=[{'field':'@count'}]))
T('path 1e6',lambda:s.query('/'+'a/'*500000,[]))
T('explain analyze all',lambda:s.query('/',{'field':'t','op':'match','value':'peace'},explain='analyze',include_total=True,order_by=[{'field':'t'}]))
T('select big',lambda:s.query('/d',{'field':'n','op':'lt','value':0},select=['t'],limit=1000))
T('num edge',lambda:s.q('POST','/query',b'{"path":"/","where":{"field":"n","op":"gt","value":1e400}}',headers={'Content-Type':'application/json'}))
T('num edge2',lambda:s.q('POST','/query',('{"path":"/","where":{"field":"n","op":"gt","value":'+'9'*200000+'}}').encode(),headers={'Content-Type':'application/json'}))
T('num nan',lambda:s.q('POST','/query',b'{"path":"/","where":{"field":"n","op":"gt","value":NaN}}',headers={'Content-Type':'application/json'}))
T('surr',lambda:s.q('POST','/query',b'{"path":"/","where":{"field":"t","op":"contains","value":"\\ud800"}}',headers={'Content-Type':'application/json'}))
print('rss',rss())
# concurrent dear + cheap
dear=[lambda:s.query('/',{'or':[{'field':'t','op':'fuzzy','value':'lorim apfle%d'%i,'fuzziness':10} for i in range(50)]},include_matches=True,limit=1000,timeout=None) if 0 else s.query('/',{'or':[{'field':'t','op':'fuzzy','value':'lorim apfle%d'%i,'fuzziness':10} for i in range(50)]},include_matches=True,limit=1000)]
stop=time.time()+40; lat=[]; dl=[]; 
def dearly():
    while time.time()<stop:
        t=time.time()
        try: r=dear[0](); dl.append((r[0],round(time.time()-t,1)))
        except Exception as e: dl.append((repr(e)[:60],round(time.time()-t,1)))
def cheap():
    while time.time()<stop:
        t=time.time()
        try: s.q('GET','/files/d/f1.json',timeout=60)
        except Exception as e: print('cheap',e)
        lat.append(time.time()-t); time.sleep(.05)
base=[]
for _ in range(50): t=time.time(); s.q('GET','/files/d/f1.json'); base.append(time.time()-t)
th=[threading.Thread(target=dearly) for _ in range(60)]+[threading.Thread(target=cheap) for _ in range(2)]
[t.start() for t in th]; [t.join() for t in th]
lat.sort(); base.sort(); from collections import Counter
print('cheap alone p50',base[25],'max',base[-1],'with dear n',len(lat),'p50',lat[len(lat)//2],'p99',lat[int(len(lat)*.99)],'max',lat[-1]); print(Counter(x[0] for x in dl), max(x[1] for x in dl) if dl else 0); print('rss',rss())
time.sleep(5)
t=time.time(); s.q('GET','/files/d/f1.json'); print('after',time.time()-t)
s.stop()
