import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
import threading
d='/tmp/attackq/cursors'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
rng=random.Random(1); W=['apple','war','peace']+['w%d'%i for i in range(30)]
s.put('/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext']},{'name':'n','type':'exact'},{'name':'@path','type':['exact']}]})
# stable: /s (never changes), moving: /m
for base in ('s','m'):
    s.q('POST','/files/batch',{'operations':[{'op':'put','path':f'/{base}/{i%13}/f{i}.json','content':json.dumps({'t':rng.choice(W),'n':rng.choice([1,2,3,2.0,'2',None,True,i])}),'content_type':'application/json'} for i in range(1900)]})
stop=False; cnt=0
def writer():
    global cnt
    r=random.Random(2)
    while not stop:
        i=r.randrange(1900); x=r.random(); cnt+=1
        if x<.6: s.put(f'/m/{i%13}/f{i}.json',{'t':r.choice(W),'n':r.choice([1,2,3,None,i])})
        elif x<.8: s.q('DELETE',f'/files/m/{i%13}/f{i}.json')
        elif x<.9: s.put(f'/m/{r.randrange(13)}/new{i}.json',{'t':r.choice(W),'n':i})
        elif x<.95: s.q('POST','/files/batch',{'operations':[{'op':'put','path':f'/m/{k%13}/f{k}.json','content':'{"t":"war","n":5}','content_type':'application/json'} for k in range(i,i+300)]})
        elif x<.96: s.put('/m/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':r.choice([['exact'],['exact','trigram']])}]})
        elif x<.97: s.q('DELETE','/files/m/.svc-config/indexes.json')
th=threading.Thread(target=writer); th.start()
end=time.time()+30; bad=0; runs=0
stable={f'/s/{i%13}/f{i}.json' for i in range(1900)}
exp={}
while time.time()<end:
    w=rng.choice([[],{'field':'n','op':'exists'},{'field':'t','op':'prefix','value':'w'},{'field':'@path','op':'prefix','value':'/'},{'not':{'field':'t','op':'eq','value':'war'}}])
    ob=rng.choice([None,[{'field':'n','direction':rng.choice(['asc','desc'])}],[{'field':'t'},{'field':'n','direction':'desc'}],[{'field':'@size','direction':'desc'}],[{'field':'@path','direction':'desc'}],[{'field':'@updated_at'}]])
    k={'limit':rng.choice([50,333,1000])}
    if ob: k['order_by']=ob
    key=json.dumps(w)
    if key not in exp: 
        e=s.allpaths('/s',w,limit=1000)
        if isinstance(e,tuple): print('E',e); time.sleep(1); continue
        exp[key]=sorted(e)
    try: r=s.allpaths('/',w,**k)
    except Exception as e: print(repr(e)); continue
    if isinstance(r,tuple): 
        print('err',w,k,r[0],str(r[1])[:150]); continue
    runs+=1; st=[p for p in r if p.startswith('/s/')]
    if sorted(st)!=exp[key]:
        bad+=1; print('BAD',w,k,'dups',len(st)-len(set(st)),'missing',len(set(exp[key])-set(st)),list(set(exp[key])-set(st))[:3])
        if bad>5: break
stop=True; th.join(); print('runs',runs,'bad',bad,'writes',cnt)
# backwards
r=s.query('/s',[],limit=100,order_by=[{'field':'n','direction':'desc'}]); pages=[]
f=s.allpaths('/s',[],limit=77,order_by=[{'field':'n','direction':'desc'}])
cur=None; a=[]; k={}
while True:
    x=s.query('/s',[],limit=77,order_by=[{'field':'n','direction':'desc'}],**k)[1]; a.append([y['path'] for y in x['results']])
    if not x['has_more']: break
    k={'after':x['next_cursor']}
b=[]; 
while 'prev_cursor' in x:
    x=s.query('/s',[],limit=77,order_by=[{'field':'n','direction':'desc'}],before=x['prev_cursor'])[1]; b=[y['path'] for y in x['results']]+b
print('back ok', b==[p for pg in a[:-1] for p in pg], len(b))
s.stop()
