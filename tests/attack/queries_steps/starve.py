import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
import threading
d='/tmp/attackq/starve'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
rng=random.Random(1); W=['apple','war','peace']+['w%d'%i for i in range(300)]
s.put('/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext','phonetic']},{'name':'n','type':'exact'},{'name':'@path','type':['exact','trigram']}]})
for k in range(0,10000,2000):
    s.q('POST','/files/batch',{'operations':[{'op':'put','path':f'/d/f{i}.json','content':json.dumps({'t':' '.join(rng.choices(W,k=30)),'n':i}),'content_type':'application/json'} for i in range(k,k+2000)]})
for _ in range(60):
    if 'meta' not in s.query('/',[],limit=1)[1] : break
    time.sleep(.5)
time.sleep(3); print({k:v for k,v in s.q('GET','/query/status')[1].items() if k in('unflushed','documents','jobs')})
Q={'contains e':({'field':'t','op':'contains','value':'e'},dict(include_total=True)),'fuzzy50':({'or':[{'field':'t','op':'fuzzy','value':'lorim apfle%d'%i,'fuzziness':10} for i in range(50)]},{}),'fuzzy50 matches':({'or':[{'field':'t','op':'fuzzy','value':'lorim apfle%d'%i,'fuzziness':10} for i in range(50)]},dict(include_matches=True,limit=1000)),'group':([],dict(aggregate={'count':True,'min':['t'],'group_by':['@path','t']},limit=1000)),'group by hash':([],dict(aggregate={'count':True,'group_by':['@hash']},limit=1000,offset=9000,order_by=[{'field':'@count'}])),'or1000 eq':({'or':[{'field':'n','op':'eq','value':i} for i in range(1000)]},{}),'sort t':({'not':{'field':'t','op':'contains','value':'zz'}},dict(order_by=[{'field':'t','direction':'desc'},{'field':'n'}],limit=1000))}
for n,(w,k) in Q.items():
    t=time.time(); r=s.query('/',w,**k); print(n,r[0],round(time.time()-t,2),str(r[1])[:100] if r[0]!=200 else '')
for n in ('contains e','fuzzy50 matches'):
  for N in (4,20):
    w,k=Q[n]; stop=time.time()+12; lat=[]; dl=[]
    def dearly():
        while time.time()<stop:
            t=time.time()
            try: r=s.q('POST','/query',dict(path='/',where=w,**k),timeout=8); dl.append((r[0],time.time()-t))
            except Exception as e: dl.append((repr(e)[:40],time.time()-t))
    def cheap():
        while time.time()<stop:
            t=time.time()
            try: s.q('GET','/files/d/f1.json',timeout=30)
            except Exception as e: pass
            lat.append(time.time()-t); time.sleep(.05)
    th=[threading.Thread(target=dearly) for _ in range(N)]+[threading.Thread(target=cheap) for _ in range(2)]
    [t.start() for t in th]; [t.join() for t in th]; lat.sort()
    from collections import Counter
    print(n,N,'cheap n',len(lat),'p50',round(lat[len(lat)//2],3),'p99',round(lat[int(len(lat)*.99)],2),'max',round(lat[-1],2),Counter(x[0] for x in dl)); sys.stdout.flush()
    t=time.time(); 
    try: s.q('GET','/files/d/f1.json',timeout=60); print('  free after',round(time.time()-t,1))
    except Exception as e: print('  after',repr(e))
s.stop()
